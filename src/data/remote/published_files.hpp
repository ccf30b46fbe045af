// Published files by name: on this machine, or fetched.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <dtrain/data/prepare.hpp>

namespace dtrain::data {

struct PublishedFile {
  const char* name;
  std::uint64_t size;
  const char* sha256;
};

// Bytes with the name to use in messages. Cheap to copy; the copies share what holds the bytes.
struct SourceBytes {
  std::string name;
  ByteView bytes;
  std::shared_ptr<const void> owner;
};

SourceBytes map_source(const Path& path);
// The plain content of a gzip file, of all its members, or of a zlib stream. Throws DataError for damage, an early end
// and more than 1 GiB.
SourceBytes gunzip(const SourceBytes& packed);
// The regular file inside a tar whose path ends in /NAME or is NAME. Throws DataError when it is missing or cut short.
SourceBytes file_in_tar(const SourceBytes& tar, std::string_view name);

bool is_url(std::string_view text);
// Downloads BASE/name (BASE itself when it already ends in the name) to OUT/name, where it stays for the next time.
Path fetch(const PublishedFile& file, const std::string& base, const PrepareOptions& options);

}  // namespace dtrain::data
