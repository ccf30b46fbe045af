#include "list.hpp"

#include <fmt/format.h>
#include <pugixml.hpp>

#include <charconv>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

#include "store_state.hpp"

namespace dtrain::net {
namespace {

pugi::xml_node root_of(pugi::xml_document& document, std::string_view xml, const char* wanted) {
  const pugi::xml_parse_result parsed = document.load_buffer(xml.data(), xml.size());
  const pugi::xml_node root = document.document_element();
  // Some servers say Response for Result.
  const std::string_view subject = std::string_view(wanted).substr(0, std::string_view(wanted).find("Result"));
  if (parsed && std::string_view(root.name()).starts_with(subject)) return root;
  throw DataError(fmt::format("the answer is no {}: {}", wanted, parsed ? root.name() : parsed.description()),
                  "is the endpoint (AWS_ENDPOINT_URL) an S3 server?");
}

std::uint64_t number_in(const pugi::xml_node& node, const char* name) {
  const auto value = parse_integer(trim(node.child_value(name)));
  if (value && *value >= 0) return static_cast<std::uint64_t>(*value);
  throw DataError(fmt::format("<{}> in the answer is \"{}\", no size", name, node.child_value(name)));
}

// Where the list goes on, which `name` says; empty: nowhere. A server that ignores where a list is to go on sends the
// same page for ever.
std::string next_page(const pugi::xml_node& root, const char* name, std::string_view from) {
  if (std::string_view(root.child_value("IsTruncated")) != "true") return {};
  std::string next = root.child_value(name);
  if (!next.empty() && next != from) return next;
  throw DataError(fmt::format("{}: the server says that there is more, and not how to go on: <{}> {}", root.name(),
                              name, next.empty() ? "is missing" : "is that of this page"),
                  "does the server at the endpoint (AWS_ENDPOINT_URL) know S3's lists in pages (list-type=2)? use one "
                  "that does, or a shorter list");
}

}  // namespace

std::string decode_percent(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned value = 0;
    const char* const digits = text.data() + at + 1;
    const bool coded =
        text[at] == '%' && at + 2 < text.size() && std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    out += coded ? static_cast<char>(value) : text[at] == '+' ? ' ' : text[at];
    if (coded) at += 2;
  }
  return out;
}

ObjectPage parse_object_page(std::string_view xml, std::string_view from) {
  pugi::xml_document document;
  const pugi::xml_node root = root_of(document, xml, "ListBucketResult");
  const bool coded = std::string_view(root.child_value("EncodingType")) == "url";
  ObjectPage page;
  for (const pugi::xml_node& node : root.children("Contents")) {
    const std::string key = node.child_value("Key");
    page.entries.push_back({coded ? decode_percent(key) : key, number_in(node, "Size"), node.child_value("ETag")});
  }
  page.next = next_page(root, "NextContinuationToken", from);
  return page;
}

std::vector<UploadEntry> parse_uploads(std::string_view xml) {
  pugi::xml_document document;
  std::vector<UploadEntry> uploads;
  for (const pugi::xml_node& node : root_of(document, xml, "ListMultipartUploadsResult").children("Upload")) {
    uploads.push_back({node.child_value("Key"), node.child_value("UploadId"), node.child_value("Initiated"),
                       node.child_value("ChecksumAlgorithm"), node.child_value("ChecksumType")});
  }
  return uploads;
}

PartPage parse_parts(std::string_view xml, std::string_view from) {
  pugi::xml_document document;
  const pugi::xml_node root = root_of(document, xml, "ListPartsResult");
  PartPage page;
  for (const pugi::xml_node& node : root.children("Part")) {
    page.parts.push_back({static_cast<int>(number_in(node, "PartNumber")), number_in(node, "Size"),
                          node.child_value("ETag"), node.child_value("ChecksumCRC32C")});
  }
  page.next = next_page(root, "NextPartNumberMarker", from);
  return page;
}

std::string parse_upload_id(std::string_view xml) {
  pugi::xml_document document;
  return root_of(document, xml, "InitiateMultipartUploadResult").child_value("UploadId");
}

void ObjectStore::list(const std::string& url, const std::function<void(const ObjectEntry&)>& each) {
  const S3Url where = parse_s3_url(url);
  const std::string bucket = S3Url{where.bucket, ""}.text();
  std::string token;
  do {
    AwsRequest shape{.query = {{"list-type", "2"}, {"encoding-type", "url"}, {"prefix", where.key}}};
    if (!token.empty()) shape.query.emplace_back("continuation-token", token);
    const ObjectPage page = parse_object_page(state_->call(bucket, shape).body, token);
    for (const ObjectEntry& entry : page.entries) each(entry);
    token = page.next;
  } while (!token.empty());
}

}  // namespace dtrain::net
