// `cluster prepare-s3`: folders and files of this machine as one tar archive in a bucket, for `data unpack`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/net/objects.hpp>

namespace dtrain::data {

struct BundleOptions {
  std::vector<Path> sources;  // each stands in the archive under its own name, a folder with all below it
  std::string to;             // s3://BUCKET/KEY
  // Bytes of the archive, while `file` is read.
  std::function<void(std::string_view file, std::uint64_t done, std::uint64_t total)> progress = {};
};

struct BundleResult {
  std::uint64_t files = 0, bytes = 0;  // of the sources
  std::uint64_t size = 0;              // of the archive
  std::uint64_t resumed_bytes = 0;     // that a run which was killed had sent
  std::string checksum;                // in the form of S3: base64 of CRC-32C, "...-N" over N parts
  bool read_back = false;              // the bucket confirmed size and checksum; false: no permission to ask
};

// The archive is there whole or not at all, and nothing of it is kept on this machine's disk. Throws UsageError (no
// such source, two of one name, no object's URL), DataError (a link to a folder, a file that changes meanwhile, another
// size or checksum in the bucket), net::AwsError, Stopped.
BundleResult send_bundle(net::ObjectStore& store, const BundleOptions& options);

}  // namespace dtrain::data
