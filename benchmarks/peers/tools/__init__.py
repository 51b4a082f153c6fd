"""One module for each tool: ``fit(rows, alpha, ...)`` returns its coefficients."""
