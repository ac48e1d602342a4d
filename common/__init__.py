"""What every room uses: errors, whole files and locks, JSON that is checked, options as data; light to import."""
