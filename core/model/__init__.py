"""Values: what memory is made of. Nothing here reads, writes, decides or knows the time."""
