"""The commands of `korbert`, by what they work on."""
