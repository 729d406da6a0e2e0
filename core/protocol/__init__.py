"""The wire: request and response envelopes and the canonical form their digests are taken over (KIP §71-86)."""
