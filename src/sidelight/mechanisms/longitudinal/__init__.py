"""Reports sent again and again: a response that is kept, and fresh noise on top of it each time."""
