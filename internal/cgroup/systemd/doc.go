// Package systemd asks systemd for a control group.
package systemd
