"""The placeholder mover: keep placeholders on the newest node that is fit."""
