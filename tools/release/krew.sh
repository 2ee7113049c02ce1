#!/usr/bin/env bash
# Pack the kubectl plugin, and write its manifest for krew with the archive's address and checksum, into
# build/release/krew. The archive is what the forge's release v<version> offers for download (forge.sh).
. "$(dirname "$0")/common.sh"
repository=$(address repository)
version=$(version)
archive=kubectl-roost.tar.gz
folder=$output/krew
mkdir -p "$folder"
# Packed anew, it is the same to the byte: nothing of this machine is in it.
tar --create --gzip --file "$folder/$archive" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
  --directory "$PWD/tools/krew" kubectl-roost --directory "$PWD" LICENSE
checksum=$(sha256sum "$folder/$archive" | cut -d ' ' -f 1)
sed -e '/^#/d' -e "s|VERSION|$version|" -e "s|URI|$repository/releases/download/v$version/$archive|" -e "s|SHA256|$checksum|" \
  tools/krew/roost.yaml >"$folder/roost.yaml"
echo "$folder/$archive $folder/roost.yaml"
