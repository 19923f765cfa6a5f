"""Reproductions of the papers behind Slackwater, one package per paper; ``slackwater reproduce`` runs them."""
