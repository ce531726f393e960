package image

// Bundles are the files in which systems keep the certificates that they trust,
// in PEM, all in one. The first that is there is the one to name.
func Bundles() []string {
	return []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem"}
}

// BundleVariables name, for programs, the file of all certificates that they are
// to trust.
func BundleVariables() []string {
	return []string{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO"}
}

// AuthorityVariables name, for programs that have certificates of their own, a
// file of those that they are to trust besides.
func AuthorityVariables() []string { return []string{"NODE_EXTRA_CA_CERTS", "DENO_CERT"} }

// JavaHomes are patterns of the directories in which systems keep Java.
func JavaHomes() []string { return []string{"/usr/lib/jvm/*", "/usr/lib/jvm/*/jre", "/opt/*"} }
