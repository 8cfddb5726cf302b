"""Kernels, and the processes that run them, forked from one that has loaded what each of them loads: it is loaded once,
not for every notebook. Nothing of the companion is among it.
"""

import asyncio
import gc
import multiprocessing
import os
import sys
import threading
from importlib.metadata import EntryPoint

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

FORKS = sys.platform == "linux"  # Windows forks nothing, macOS nothing safely that has loaded its frameworks
LOADED = ["torch._dynamo", "matplotlib.pyplot", "seaborn", "ipykernel.kernelapp", "ipywidgets", "nbval.plugin"]


def process(target, *arguments) -> multiprocessing.Process:
    """Return a process that calls ``target``, and has begun. It is a fork of this one, if that is such a process."""
    warm = "fork" if multiprocessing.parent_process() else "forkserver"
    multiprocessing.set_forkserver_preload(LOADED)
    begun = multiprocessing.get_context(warm if FORKS else "spawn").Process(target=target, args=arguments)
    begun.start()
    return begun


def kernel(arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be the kernel that ``python -m ipykernel_launcher`` would be with these ``arguments``."""
    import matplotlib as mpl
    from ipykernel.kernelapp import IPKernelApp

    gc.freeze()  # no collection looks through what is loaded
    os.setsid()
    os.chdir(folder)
    os.environ.update(environment)
    asyncio.set_event_loop(asyncio.new_event_loop())  # that of a process which was forked while it ran still runs there
    mpl.rcParams["backend"] = "module://matplotlib_inline.backend_inline"  # the kernel names it before it is loaded
    threading.Thread(target=ends_with_its_parent, daemon=True).start()
    IPKernelApp.launch_instance(argv=arguments, parent_handle=os.getppid())


def ends_with_its_parent() -> None:
    """End this process once the one that asked for it is gone, killed perhaps. The one that was forked stays as long as
    its forks do.
    """
    multiprocessing.parent_process().join()
    os._exit(1)


class Forked(LocalProvisioner):
    """Starts a `kernel`, and does with its process what Jupyter asks for."""

    async def launch_kernel(self, cmd: list[str], *, cwd: str = ".", env: dict[str, str], **_: object) -> dict:
        self.process = process(kernel, cmd[cmd.index("-f") :], cwd, env)
        return self.connection_info

    async def poll(self) -> int | None:
        return self.process.exitcode if self.process else 0

    async def wait(self) -> int | None:
        while (status := await self.poll()) is None:
            await asyncio.sleep(0.1)
        self.process = None
        return status

    async def send_signal(self, signum: int) -> None:
        if self.process and self.process.is_alive():
            os.kill(self.process.pid, signum)


def kernels() -> None:
    """Have the kernels of this process be forked, where it does not say otherwise."""
    factory = KernelProvisionerFactory.instance()
    factory.provisioners["forked"] = EntryPoint("forked", f"{__name__}:Forked", factory.GROUP_NAME)
    factory.default_provisioner_name = "forked" if FORKS else "local-provisioner"
