"""The pages of `docs/reference`, each written from the place in the code that defines what it lists."""
