"""The paper's section 4, run again: data, algorithms, figures and claims."""
