"""Signatures: the adapters of `core.ports.Signer` and `Verifier`."""
