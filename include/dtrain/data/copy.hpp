// `data cp` and `data unpack`: files between this machine and s3:// or https://. A run that was broken off is gone on
// with by the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::data {

struct CopyOptions {
  std::string from, to;  // at least one is remote; what ends in / (or is a folder) is given the other's file name
  // Everything below `from`, a folder here or in a bucket: s3://b/p stands for s3://b/p/, or for the object p if
  // nothing is below that.
  bool recursive = false;
  // Bytes of the file that is named; from several threads, one at a time.
  std::function<void(std::string_view file, std::uint64_t done, std::uint64_t total)> progress = {};
};

struct CopyResult {
  std::uint64_t files = 0, bytes = 0;  // copied
  std::uint64_t already_there = 0;     // files that were there with the same size and checksum
  std::uint64_t resumed_bytes = 0;     // of uploads, that an earlier run had sent
};

// Every file is there whole, or not at all. A file that is replaced keeps its permissions, and a link to it leads to
// the new one. Throws UsageError (two local names, a folder without `recursive`, a target that is a pipe or a device),
// DataError (a checksum, a name that would leave the folder, two objects for one target), net::AwsError, Error (disk).
CopyResult copy_files(net::ObjectStore& store, const CopyOptions& options);

struct UnpackOptions {
  std::string from;  // a .tar or .tar.gz file, local or remote, or a local .zip file, by its first bytes
  Path out;
  std::function<void(std::uint64_t done, std::uint64_t total)> progress = {};  // bytes of the archive
};

struct UnpackResult {
  std::uint64_t files = 0, bytes = 0;  // written by this run
  std::uint64_t resumed_at = 0;        // byte of the archive where it went on; 0: it began at the beginning
  bool lacks_end_mark = false;         // as lacks_end_mark() says
};

// Reads the archive once, from front to end, and writes each file as it comes; nothing else of it is kept. While it is
// not at its end OUT/.dtrain-unpack.json says how far it came, except of a .tar.gz file. Throws as above, and for links
// and devices DataError.
UnpackResult unpack_archive(net::ObjectStore& store, const UnpackOptions& options);

// Whether it is a .tar file without the block of zeros at its end. The tar programs write one; without it the archive
// may be cut short between two of its files, or come from a program that did not close it. Throws DataError for damage.
bool lacks_end_mark(const Path& file);

}  // namespace dtrain::data
