"""Students' names: any script, no letter that plays tricks on a terminal, a table or a file system."""

import hashlib
import os
import unicodedata

LETTERS_THAT_JOIN = "\u200c\u200d"  # of category Cf, like what turns the direction of writing, but part of words
LONGEST = 80  # bytes of a file's name that a student's name may take


def student(folder: str) -> str:
    """Return the name that a folder's name gives: NFC, so that it is one name however a system wrote it; a byte or
    letter that cannot be shown becomes ``\\xff`` or ``\\u202e``, and a backslash two, so that no two names become one.
    """
    text = os.fsencode(folder).decode("utf-8", "surrogateescape")
    return "".join(map(_shown, unicodedata.normalize("NFC", text)))


def _shown(letter: str) -> str:
    number = ord(letter)
    if 0xDC80 <= number <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{number - 0xDC00:02x}"
    if letter == "\\":
        return "\\\\"
    if letter in LETTERS_THAT_JOIN or (unicodedata.category(letter)[0] != "C" and letter not in "\u2028\u2029"):
        return letter
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"


def file_name(name: str) -> str:
    """Return a name for a folder of this student: the name itself where every file system takes it, else its beginning
    and a hash.
    """
    plain = "".join("_" if letter in '/\\:*?"<>|' else letter for letter in name).strip(". ") or "_"
    if plain == name and len(name.encode()) <= LONGEST:
        return name
    cut = plain.encode()[:LONGEST].decode(errors="ignore")
    return f"{cut}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def one_line(text: str) -> str:
    """Text that stays on its line and does nothing to a terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in text)
