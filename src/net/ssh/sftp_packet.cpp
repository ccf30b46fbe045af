#include "sftp_packet.hpp"

#include <sys/stat.h>

namespace dtrain::net::ssh {
namespace {

SshFile take_attributes(Unpacker& fields) {
  SshFile file;
  const std::uint32_t flags = fields.u32();
  if (flags & kHasSize) file.size = fields.u64();
  if (flags & kHasOwner) fields.u64();
  const std::uint32_t mode = flags & kHasMode ? fields.u32() : 0;
  if (flags & kHasTimes) fields.u32(), file.mtime = fields.u32();
  if (flags & kHasMore) {
    for (std::uint32_t left = fields.u32(); left > 0; --left) fields.text(), fields.text();
  }
  file.mode = mode & 07777;
  if (S_ISREG(mode)) file.kind = SshFile::Kind::file;
  if (S_ISDIR(mode)) file.kind = SshFile::Kind::folder;
  return file;
}

}  // namespace

SshFile parse_attributes(std::string_view body) {
  Unpacker fields(body);
  return take_attributes(fields);
}

std::vector<SshFile> parse_names(std::string_view body) {
  Unpacker fields(body);
  std::vector<SshFile> files;
  for (std::uint32_t left = fields.u32(); left > 0; --left) {
    const std::string name(fields.text());
    fields.text();  // as `ls -l` would print it
    files.push_back(take_attributes(fields));
    files.back().name = name;
  }
  return files;
}

}  // namespace dtrain::net::ssh
