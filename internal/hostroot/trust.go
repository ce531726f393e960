package hostroot

// Bundles returns the files in which systems keep their trusted certificates, all in one PEM file. Use
// the first that exists.
func Bundles() []string {
	return []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem"}
}

// BundleVariables returns the variables that name a program's file of all trusted certificates.
func BundleVariables() []string {
	return []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO"}
}

// AuthorityVariables returns the variables that name a file of additional trusted certificates, for
// programs with certificates of their own.
func AuthorityVariables() []string { return []string{"NODE_EXTRA_CA_CERTS", "DENO_CERT"} }

// JavaHomes returns patterns of the directories in which systems install Java.
func JavaHomes() []string { return []string{"/usr/lib/jvm/*", "/usr/lib/jvm/*/jre", "/opt/*"} }
