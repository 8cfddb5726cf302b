"""The notebooks' kernels are forked from one process; those of all other tests start as a person's do."""

import pytest
import warm
from jupyter_client.provisioning import KernelProvisionerFactory


@pytest.fixture(autouse=True)
def _forked_kernels(monkeypatch):
    factory = KernelProvisionerFactory.instance()
    monkeypatch.setattr(factory, "default_provisioner_name", factory.default_provisioner_name)  # and back afterwards
    warm.kernels()
