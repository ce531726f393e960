// Package hostroot lists the host's directories that the root "host" contains, and those that it leaves
// out. Tiers build the root from these lists, and policy explanations use the same lists, so that both
// agree.
//
// The package is pure. Each function returns a list that the caller may change.
package hostroot

import "strings"

// SystemDirs returns the host's directories that hold its system and no data of its users.
func SystemDirs() []string {
	return []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"}
}

// ProgramDirs returns the host's directories in which programs are found that Paddock starts by itself. PATH is not used, because
// it may include a directory that a sandbox writes, such as .venv/bin of a workspace.
func ProgramDirs() []string {
	return []string{"/usr/bin", "/bin", "/usr/local/bin", "/run/current-system/sw/bin", "/opt/homebrew/bin"}
}

// PrivateDirs returns the directories that each sandbox has for itself, in addition to the home.
func PrivateDirs() []string { return []string{"/tmp", "/var/tmp", "/run", "/dev/shm"} }

// Credentials returns files and directories of a host's system that may be readable but hold secrets.
// Tiers hide them.
func Credentials() []string {
	return []string{"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
		"/etc/krb5.keytab", "/etc/docker", "/etc/containers/auth.json", "/etc/kubernetes", "/etc/rancher", "/etc/NetworkManager/system-connections", "/etc/wpa_supplicant",
		"/etc/wireguard", "/etc/openvpn", "/etc/ppp", "/etc/letsencrypt", "/etc/ssh", "/etc/mysql", "/etc/boto.cfg", "/etc/environment",
		"/etc/paddock", "/etc/paddock-key", "/etc/paddock-tls"}
}

// Closed returns directories of the system and numbers of levels. Down to these levels, tiers hide from sandboxes of
// an ordinary caller what this caller may read and others may not. Deeper, and in other directories, are too many files
// to look at for each sandbox.
func Closed() map[string]int { return map[string]int{"/etc": 3, "/opt": 2, "/usr/local": 2} }

// Within reports whether a clean path is a directory or below it.
func Within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
