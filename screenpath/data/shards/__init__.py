"""Data larger than memory: folders of binary parts by rows or by columns, checked before they are believed."""
