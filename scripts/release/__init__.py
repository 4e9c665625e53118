"""Makes a release: `python -m scripts.release VERSION`. `docs/internals/releases.md` describes it."""
