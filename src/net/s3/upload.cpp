#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <map>

#include <dtrain/base/error.hpp>

#include "aws/problem.hpp"
#include "checksum.hpp"
#include "list.hpp"
#include "store_state.hpp"

namespace dtrain::net {
namespace {

constexpr std::size_t kPartsInFlight = 4;
// After so many parts the size doubles: 10,000 parts then hold S3's largest object.
constexpr int kPartsOfOneSize = 1000;

struct SentPart {
  int number = 0;
  std::string etag, checksum;
};

std::string complete_document(const std::vector<SentPart>& parts) {
  std::string xml = "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  for (const SentPart& part : parts) {
    xml += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag><ChecksumCRC32C>{}</ChecksumCRC32C></Part>",
                       part.number, part.etag, part.checksum);
  }
  return xml + "</CompleteMultipartUpload>";
}

}  // namespace

struct ObjectUpload::State {
  ObjectStore::State& store;
  std::string url;
  std::uint64_t part_size;
  std::string id{};                    // empty: no upload in parts was begun
  std::map<int, PartEntry> earlier{};  // parts that a killed upload left, by number
  std::string buffer{};
  std::uint64_t size = 0;
  std::atomic<std::uint64_t> reused{0};
  std::deque<std::future<SentPart>> in_flight{};
  std::vector<SentPart> sent{};
  std::string whole_checksum{};
  bool finished = false;

  AwsAnswer call(const std::string& method, std::vector<HttpField> query, std::vector<HttpField> headers = {},
                 ByteView body = {}) {
    return store.call(url, {.method = method, .query = std::move(query), .headers = std::move(headers), .body = body});
  }
  std::vector<UploadEntry> unfinished_uploads();
  void begin();
  void adopt(const std::string& upload);
  void abort(const std::string& upload);
  void flush_part();
  SentPart send(int number, const std::string& content);
  void take_oldest();
  void complete();
  int next_number() const { return static_cast<int>(sent.size() + in_flight.size()) + 1; }
};

// None without the permission to list, which a user who may write need not have.
std::vector<UploadEntry> ObjectUpload::State::unfinished_uploads() try {
  const S3Url object = parse_s3_url(url);
  const AwsAnswer answer =
      store.call(S3Url{object.bucket, ""}.text(), {.query = {{"uploads", ""}, {"prefix", object.key}}});
  std::vector<UploadEntry> uploads = parse_uploads(answer.body);
  std::erase_if(uploads, [&](const UploadEntry& upload) { return upload.key != object.key; });
  std::sort(uploads.begin(), uploads.end(),
            [](const UploadEntry& a, const UploadEntry& b) { return a.initiated > b.initiated; });
  return uploads;
} catch (const AwsError& error) {
  if (error.facts().problem != AwsProblem::denied) throw;
  return {};
}

void ObjectUpload::State::begin() {
  for (const UploadEntry& upload : unfinished_uploads()) {
    if (id.empty()) {
      adopt(upload.id);
    } else {
      abort(upload.id);
    }
  }
  if (!id.empty()) return;
  id = parse_upload_id(call("POST", {{"uploads", ""}}, {{"x-amz-checksum-algorithm", "CRC32C"}}).body);
}

void ObjectUpload::State::adopt(const std::string& upload) {
  std::string marker;
  do {
    std::vector<HttpField> query{{"uploadId", upload}};
    if (!marker.empty()) query.emplace_back("part-number-marker", marker);
    PartPage page = parse_parts(call("GET", query).body);
    for (PartEntry& part : page.parts) earlier[part.number] = std::move(part);
    marker = page.next;
  } while (!marker.empty());
  id = upload;
}

void ObjectUpload::State::abort(const std::string& upload) {
  try {
    call("DELETE", {{"uploadId", upload}});
  } catch (const AwsError& error) {
    if (error.facts().problem != AwsProblem::not_found) throw;
  }
}

SentPart ObjectUpload::State::send(int number, const std::string& content) {
  const std::string checksum = checksum_text(bytes_of(content));
  if (const auto found = earlier.find(number);
      found != earlier.end() && found->second.size == content.size() && found->second.checksum == checksum) {
    reused += content.size();
    return {number, found->second.etag, checksum};
  }
  const AwsAnswer answer = call("PUT", {{"partNumber", std::to_string(number)}, {"uploadId", id}},
                                {{"x-amz-checksum-crc32c", checksum}}, bytes_of(content));
  return {number, answer.header("etag"), checksum};
}

void ObjectUpload::State::flush_part() {
  if (id.empty()) begin();
  if (in_flight.size() == kPartsInFlight) take_oldest();
  const int number = next_number();
  in_flight.push_back(std::async(
      std::launch::async, [this, number, content = std::exchange(buffer, {})] { return send(number, content); }));
  if (number % kPartsOfOneSize == 0) part_size *= 2;
}

void ObjectUpload::State::take_oldest() {
  auto oldest = std::move(in_flight.front());
  in_flight.pop_front();
  sent.push_back(oldest.get());
}

void ObjectUpload::State::complete() {
  while (!in_flight.empty()) take_oldest();
  const std::string document = complete_document(sent);
  try {
    const AwsAnswer answer =
        call("POST", {{"uploadId", id}}, {{"Content-Type", "application/xml"}}, bytes_of(document));
    const AwsError::Facts facts = facts_of(answer);
    // S3 says 200 before it has begun, and what went wrong in the body.
    if (!facts.code.empty()) throw error_of(url, facts);
  } catch (const AwsError& error) {
    // An answer that was lost on its way: a further try finds no upload, but the object.
    if (error.facts().code != "NoSuchUpload" || store.look(url).size != size) throw;
  }
}

ObjectUpload::ObjectUpload(ObjectStore& store, const std::string& url)
    : state_(new State{.store = *store.state_, .url = url, .part_size = store.state_->limits.part_size}) {
  if (parse_s3_url(url).key.empty()) throw UsageError(url + ": names no object", "write s3://BUCKET/KEY");
}

ObjectUpload::~ObjectUpload() {
  if (state_->finished) return;
  for (auto& part : state_->in_flight) part.wait();
  try {
    if (!state_->id.empty()) state_->abort(state_->id);
  } catch (const Error&) {
    // the next upload to this key removes it
  }
}

void ObjectUpload::write(ByteView bytes) {
  State& state = *state_;
  state.size += bytes.size();
  while (!bytes.empty()) {
    if (state.buffer.size() == state.part_size) state.flush_part();
    const std::uint64_t taken = std::min<std::uint64_t>(bytes.size(), state.part_size - state.buffer.size());
    state.buffer += text_of(bytes.first(taken));
    bytes = bytes.subspan(taken);
  }
}

void ObjectUpload::finish() {
  State& state = *state_;
  if (state.id.empty() && state.size <= state.part_size) {
    state.whole_checksum = checksum_text(bytes_of(state.buffer));
    state.call("PUT", {}, {{"x-amz-checksum-crc32c", state.whole_checksum}}, bytes_of(state.buffer));
  } else {
    state.flush_part();
    state.complete();
    std::vector<std::string> parts;
    for (const SentPart& part : state.sent) parts.push_back(part.checksum);
    state.whole_checksum = checksum_of_checksums(parts);
  }
  state.finished = true;
}

ObjectState ObjectUpload::sent() const { return {.size = state_->size, .checksum = state_->whole_checksum}; }

std::uint64_t ObjectUpload::reused() const { return state_->reused; }

}  // namespace dtrain::net
