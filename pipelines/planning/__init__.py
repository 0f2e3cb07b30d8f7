"""`korbert plan`: what a recipe's pretraining costs."""
