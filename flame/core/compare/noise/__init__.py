"""Tell for pictures and tables which frames have changed beyond noise."""
