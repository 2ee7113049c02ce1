"""Play launches in a world of discrete events, one machine a module."""
