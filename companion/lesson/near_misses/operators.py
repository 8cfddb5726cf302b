"""Near misses of an operator: the other sign, the other order, a term or a factor left out, a bracket elsewhere."""

import ast
from collections.abc import Iterator

from companion.lesson.near_misses.words import Words


def _sides(now: ast.BinOp) -> dict[str, ast.expr]:
    """The operands, and if one is an operation itself, its operands."""
    nodes = {"L": now.left, "R": now.right}
    for letters, side in (("AB", now.left), ("CD", now.right)):
        if isinstance(side, ast.BinOp):
            nodes |= dict(zip(letters, (side.left, side.right), strict=True))
    return nodes


def _complementary(one: ast.expr, other: ast.expr) -> bool:
    """Whether two weights are a and 1 - a."""
    texts = [ast.unparse(each) for each in (one, other)]
    return texts[1] == f"1 - {texts[0]}" or texts[0] == f"1 - {texts[1]}"


def operators(node: ast.BinOp, words: Words) -> Iterator[tuple]:
    left, right = words.noun(node.left), words.noun(node.right)
    inner_left = type(node.left.op) if isinstance(node.left, ast.BinOp) else None
    inner_right = type(node.right.op) if isinstance(node.right, ast.BinOp) else None
    op, table = type(node.op), []
    if op in (ast.Add, ast.Sub):
        adds = op is ast.Add
        way, other = ("added", "subtracted") if adds else ("subtracted", "added")
        sign, counter = ("+", "-") if adds else ("-", "+")
        table += [
            (f"L {counter} R", f"{right} is {other}; it is to be {way}", "sign of a term", 1),
            ("L", f"{right} is not {way}: that term is missing", "term left out", 1),
            ("R", f"{left} is missing: only {right} is there", "term left out", 1.1),
            (
                "L + torch.zeros_like(R)",
                f"{right} is not {way}: that term is missing",
                "term left out",
                1,
            ),  # in its shape
            (f"torch.zeros_like(L) {sign} R", f"{left} is missing: only {right} is there", "term left out", 1.1),
            (f"L {sign} 2 * R", f"{right} is {way} twice", "term doubled", 1.6),
            (f"L {sign} R / 2", f"only half of {right} is {way}", "term halved", 1.6),
            (f"2 * L {sign} R", f"{left} is counted twice", "term doubled", 1.6),
            ("L * R", f"{left} and {right} are multiplied; {right} is to be {way}", "+ for *", 1.6),
            (f"L {sign} R ** 2", f"{right} is squared before it is {way}", "term squared", 1.8),
        ]
        if adds and inner_left is inner_right is ast.Mult:
            weights = node.left.left, node.right.left
            if all(isinstance(each, ast.Constant) for each in weights) or _complementary(*weights):
                what = f"{words.noun(node.left.right)} and {words.noun(node.right.right)}"
                table += [
                    ("C * B + A * D", f"the weights of {what} are exchanged", "weights", 1),
                    ("B + D", f"{what} are added up without weights: that is no average", "no weights", 1),
                ]
        if not adds:
            table += [
                (
                    "R - L",
                    f"the difference is the wrong way round: {left} and {right} are exchanged",
                    "difference turned",
                    1.2,
                ),
                ("-R", f"{left} is missing: only {right} is there, with a minus", "term left out", 1.1),
                ("(L - R).abs()", f"the sign of the difference between {left} and {right} is lost", "sign lost", 1.6),
            ]
        for inner, letters in ((inner_left, "ABR"), (inner_right, "CDL")):  # a scale that reaches too far
            if inner in (ast.Mult, ast.MatMult, ast.Div):
                mark = {ast.Mult: "*", ast.MatMult: "@", ast.Div: "/"}[inner]
                first, second, rest = letters
                side = node.left if first == "A" else node.right
                verb = "divides" if inner is ast.Div else "multiplies"
                kept = [(second, side.right)] if inner is ast.Div else [(second, side.right), (first, side.left)]
                for letter, outside in kept:
                    reached = first if letter == second else second
                    whole = f"({reached} {sign} {rest})" if first == "A" else f"({rest} {sign} {reached})"
                    whole = f"{whole} {mark} {second}" if letter == second else f"{first} {mark} {whole}"
                    says = (
                        f"{words.noun(outside)} {verb} both terms, {left} and {right}; it belongs to one of them alone"
                    )
                    table += [(whole, says, "bracket", 1.4)]
    elif op is ast.Mult:
        table += [
            ("L", f"the factor {right} is missing", "factor left out", 1),
            ("R", f"the factor {left} is missing", "factor left out", 1),
            ("L * torch.ones_like(R)", f"the factor {right} is missing", "factor left out", 1),  # in its shape
            ("torch.ones_like(L) * R", f"the factor {left} is missing", "factor left out", 1),
            ("L / R", f"divides by {right}; it is a factor", "* for /", 1),
            ("R / L", f"divides by {left}; it is a factor", "* for /", 1),
            ("L + R", f"{left} and {right} are added; they are to be multiplied", "+ for *", 1.5),
            ("L @ R", f"the product of {left} and {right} is a matrix product; it goes entry by entry", "@ for *", 1),
            ("L * R * R", f"the factor {right} comes in twice", "factor doubled", 1.2),
            ("L * R * L", f"the factor {left} comes in twice", "factor doubled", 1.2),
            *(
                [
                    (
                        "A * (B + R)",
                        f"{words.noun(node.left.right)} and {right} are added; they are to be multiplied",
                        "+ for *",
                        1.2,
                    )
                ]
                if inner_left is ast.Mult
                else []
            ),
            ("L * R ** 0.5", f"the square root of {right} is taken before it multiplies", "root of a factor", 1.4),
            ("L ** 0.5 * R", f"the square root of {left} is taken before it multiplies", "root of a factor", 1.4),
        ]
    elif op is ast.Div:
        table += [
            ("L", f"{left} is not divided by {right}", "not divided", 1),
            ("L * R", f"{left} is multiplied by {right}; divide by it", "* for /", 1),
            ("L / R / R", f"divides by {right} twice", "divided twice", 1.2),
            ("L // R", f"the quotient by {right} is cut to whole numbers: / is not //", "// for /", 1.1),
            ("L / R ** 0.5", f"divides by the square root of {right}, not by {right} itself", "root of a divisor", 1.2),
            ("L / R ** 2", f"divides by the square of {right}", "divisor squared", 1.2),
            ("L / (2 * R)", f"what is divided by {right} is half as large as it must be", "halved", 1.8),
            ("R / L", f"the fraction is upside down: {left} and {right} are exchanged", "fraction turned", 1.1),
            ("L - R", f"{right} is subtracted; divide by it", "- for /", 1.6),
            ("L / (R + 1)", f"divides by one more than {right}", "divisor off by one", 1.3),
            ("L / (R - 1)", f"divides by one less than {right}", "divisor off by one", 1.3),
            ("L / (1 + R)", f"1 is added to {right} in the denominator", "1 in a denominator", 1.5),
            ("R", f"{left} is missing above the line: only {right} is there", "numerator left out", 1.7),
            ("1 / R", f"{left} is missing above the line", "numerator left out", 1.4),
        ]
        if inner_right in (ast.Add, ast.Sub):
            sign = "+" if inner_right is ast.Add else "-"
            table += [
                (
                    f"L / C {sign} D",
                    f"the division stops at {words.noun(node.right.left)}: it has the whole of {right} below the line",
                    "bracket",
                    1.3,
                )
            ]
        if inner_right is ast.Mult:
            table += [
                (
                    "L / C * D",
                    f"{words.noun(node.right.right)} multiplies: a / b * c is not a / (b * c)",
                    "bracket",
                    1.2,
                )
            ]
        if inner_left in (ast.Add, ast.Sub):
            sign = "+" if inner_left is ast.Add else "-"
            table += [
                (
                    f"A {sign} B / R",
                    f"{right} divides only {words.noun(node.left.right)}; it divides {words.noun(node.left.left)}, too",
                    "bracket",
                    1.2,
                ),
                (
                    f"A / R {sign} B",
                    f"{right} divides only {words.noun(node.left.left)}; it divides {words.noun(node.left.right)}, too",
                    "bracket",
                    1.2,
                ),
            ]
    elif op is ast.Pow:
        root = isinstance(node.right, ast.Constant) and node.right.value == 0.5
        if root:
            table += [
                ("L", f"the square root is missing: {left} itself is taken", "root left out", 0.9),
                ("L ** 2", f"{left} is squared; its square root is due", "square for root", 1.1),
                ("1", f"{left} is missing: the factor with its square root is not there", "factor left out", 1.1),
                ("(L - 1) ** 0.5", f"the square root is that of one less than {left}", "off by one", 1.2),
                ("(L + 1) ** 0.5", f"the square root is that of one more than {left}", "off by one", 1.2),
            ]
        else:
            table += [
                ("L", f"the power is missing: {left} enters once", "power left out", 1),
                ("L ** (R + 1)", f"the power is one too high: the exponent is {right}", "exponent off by one", 1),
                ("L ** (R - 1)", f"the power is one too low: the exponent is {right}", "exponent off by one", 1),
                ("L ** (2 * R)", f"the exponent is twice {right}", "exponent doubled", 1.5),
                ("L ** (2 ** R)", f"the exponent is 2 to the power of {right}", "exponent doubled", 1.6),
                ("L ** -R", "the exponent has the wrong sign", "sign of an exponent", 1.3),
                ("R ** L", "base and exponent are exchanged", "power turned", 1.2),
                ("L * R", f"multiplied by {right}; it is an exponent", "* for power", 1.1),
                ("1 - L ** R", "this is 1 minus the power", "complement", 1.6),
                ("R", f"only the exponent is there; it belongs to a power of {left}", "power left out", 1.6),
                ("R + 1", f"the exponents stand where powers of {left} belong", "power left out", 1.6),
                ("R ** 2", f"squares stand where powers of {left} belong", "power left out", 1.5),
            ]
        if inner_left in (ast.Add, ast.Sub):
            sign = "+" if inner_left is ast.Add else "-"
            table += [
                (
                    f"A {sign} B ** R",
                    f"the power reaches only {words.noun(node.left.right)}; it belongs to the whole bracket, {left}",
                    "bracket",
                    1.1,
                )
            ]
    elif op is ast.MatMult:
        table += [
            ("L * R", f"`*` multiplies entry by entry; {left} and {right} are multiplied by `@`", "* for @", 1),
            ("R @ L", f"the two factors {left} and {right} are in the wrong order", "order of a product", 1),
            ("L", f"the factor {right} is missing from the product", "factor left out", 1.1),
            ("R", f"the factor {left} is missing from the product", "factor left out", 1.1),
            (
                "L.sum(-1, keepdim=True) @ R.sum(-2, keepdim=True)",
                f"{left} and {right} are summed first, and the sums multiplied: that mixes all with all; multiply one by "
                "one, then sum",
                "sums first",
                1.2,
            ),
            ("L @ R @ R", f"the factor {right} comes in twice", "factor doubled", 1.5),
            ("L @ L @ R", f"the factor {left} comes in twice", "factor doubled", 1.5),
            ("L.mT @ R", f"{left} is transposed, and should not be", "transpose", 1.1),
            ("L @ R.mT", f"{right} is transposed, and should not be", "transpose", 1.1),
            (
                "R.mT @ L",
                f"the two factors {left} and {right} are in the wrong order, one of them transposed",
                "order of a product",
                1.5,
            ),
            (
                "R @ L.mT",
                f"the two factors {left} and {right} are in the wrong order, one of them transposed",
                "order of a product",
                1.5,
            ),
        ]
        if isinstance(node.right, ast.Attribute):
            apart = f"the rows of {left} and {words.noun(node.right.value)} are compared by distance; inner products are due"
            table += [("-torch.cdist(L, R.mT)", apart, "distance for product", 1.2)]
    elif op in (ast.BitAnd, ast.BitOr):
        other, said = ("|", "and") if op is ast.BitAnd else ("&", "or")
        table += [
            ("L", f"the condition on {right} is missing", "condition left out", 1),
            ("R", f"the condition on {left} is missing", "condition left out", 1),
            (f"L {other} R", f"the two conditions are joined by the wrong word; it is `{said}`", "and for or", 1.1),
        ]
    elif op is ast.FloorDiv:
        table += [
            ("-(-L // R)", "the quotient is rounded up; // rounds down", "rounding", 1.1),
            ("L", f"is not divided by {right}", "not divided", 1.1),
            ("L * R", f"multiplies by {right}; divide by it", "* for /", 1.3),
        ]
    elif op is ast.Mod:
        table += [("L // R", f"this is the quotient by {right}; the remainder is asked for", "// for %", 1.1)]
        if inner_left in (ast.Mult, ast.Add, ast.Sub):
            mark = {ast.Mult: "*", ast.Add: "+", ast.Sub: "-"}[inner_left]
            first, second = words.noun(node.left.left), words.noun(node.left.right)
            table += [
                (
                    f"A {mark} (B % R)",
                    f"the remainder is that of {second} alone; {first} comes in before it",
                    "bracket",
                    1,
                ),
                (
                    f"(A % R) {mark} B",
                    f"the remainder is that of {first} alone; {second} comes in before it",
                    "bracket",
                    1,
                ),
            ]
    for text, says, kind, cost in table:
        yield text, says, kind, cost, _sides
