#!/bin/sh
# Makes the Go code from the two .proto files. Needs protoc (Debian package
# protobuf-compiler, 3.21 or later); the plugins are pinned in go.mod. Debian has
# the well-known types in another package: the one that is needed is said here.
set -eu
cd "$(dirname "$0")"
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
mkdir -p "$bin/include/google/protobuf"
cat >"$bin/include/google/protobuf/timestamp.proto" <<'PROTO'
syntax = "proto3";
package google.protobuf;
option go_package = "google.golang.org/protobuf/types/known/timestamppb";
message Timestamp {
  int64 seconds = 1;
  int32 nanos = 2;
}
PROTO
go build -o "$bin/" google.golang.org/protobuf/cmd/protoc-gen-go connectrpc.com/connect/cmd/protoc-gen-connect-go
PATH="$bin:$PATH" protoc -I. -I"$bin/include" --go_out=. --go_opt=paths=source_relative \
	--connect-go_out=. --connect-go_opt=paths=source_relative,simple=false,package_suffix= process.proto filesystem.proto
