// The XML that S3 answers with.
#pragma once

#include <string>
#include <vector>

#include <dtrain/net/objects.hpp>

namespace dtrain::net {

struct ObjectPage {
  std::vector<ObjectEntry> entries;
  std::string next;  // continuation token; empty: the last page
};
// All throw DataError for an answer that is not what was asked for. `from`: the `next` of the page before, which the
// request named; an answer that goes on there again, or does not say where, is an error too.
ObjectPage parse_object_page(std::string_view xml, std::string_view from = {});

struct UploadEntry {
  std::string key, id, initiated;
  std::string algorithm, checksum_type;  // of its parts' checksums: "CRC32C", "COMPOSITE"; empty: the list does not say
};
std::vector<UploadEntry> parse_uploads(std::string_view xml);

struct PartEntry {
  int number = 0;
  std::uint64_t size = 0;
  std::string etag, checksum;
};
struct PartPage {
  std::vector<PartEntry> parts;
  std::string next;  // the part number marker of the next page; empty: the last page
};
PartPage parse_parts(std::string_view xml, std::string_view from = {});

std::string parse_upload_id(std::string_view xml);

std::string decode_percent(std::string_view text);

}  // namespace dtrain::net
