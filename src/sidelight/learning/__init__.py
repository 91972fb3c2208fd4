"""Models of the label learnt from private reports: Naive Bayes, decision trees, synthetic records."""
