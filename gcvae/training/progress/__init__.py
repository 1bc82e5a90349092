"""How far a fit is: what its parts take, the steps that are left, and the bar."""
