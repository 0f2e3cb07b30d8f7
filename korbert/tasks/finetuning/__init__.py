"""How an encoder learns a task: settings, epochs, what is trained of it, caches of pieces and vectors."""
