"""`noema`: the command line. Each command is a module of this folder, imported when it is called."""
