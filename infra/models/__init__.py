"""Language models behind their providers' wires; a provider's module is imported when a model of it is built."""
