"""Facts: short texts that agents keep, recalled by a fixed arithmetic with receipts (GrayMatter v0.20). Pure."""
