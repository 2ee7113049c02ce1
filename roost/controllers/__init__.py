"""Keep the facts that placement rests on true: snapshot -> plan -> apply, by one leader."""
