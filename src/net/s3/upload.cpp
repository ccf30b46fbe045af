#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <map>

#include <dtrain/base/error.hpp>

#include "checksum.hpp"
#include "list.hpp"
#include "store_state.hpp"

namespace dtrain::net {
namespace {

constexpr std::size_t kPartsInFlight = 4;
constexpr std::string_view kOurChecksums = "CRC32C";

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

// Whether an unfinished upload may be one of ours, by what the list says. nullopt: the server does not tell there.
std::optional<bool> has_our_checksums(const UploadEntry& upload) {
  if (upload.algorithm.empty()) return std::nullopt;
  return upload.algorithm == kOurChecksums && upload.checksum_type != "FULL_OBJECT";
}

bool all_have_checksums(const std::map<int, PartEntry>& parts) {
  return !parts.empty() && std::ranges::none_of(parts, [](const auto& part) { return part.second.checksum.empty(); });
}

// Whether `now` is what was sent, and not what stood there before. Their sizes may well be equal: all checkpoints of
// one network have the same. `before`: nullopt where that is not known.
bool is_what_was_sent(const ObjectState& now, const ObjectState& sent, const std::optional<ObjectState>& before) {
  if (now.size != sent.size) return false;
  if (now.checksum.find('-') != now.checksum.npos) return now.checksum == sent.checksum;
  return before && !now.etag.empty() && now.etag != before->etag;
}

}  // namespace

struct ObjectUpload::State {
  ObjectStore::State& store;
  std::string url;
  std::uint64_t part_size;
  FailedParts failed;
  std::string id{};                    // empty: no upload in parts was begun
  std::map<int, PartEntry> earlier{};  // parts that a killed upload left, by number
  std::string buffer{};
  std::uint64_t size = 0;
  std::atomic<std::uint64_t> reused{0};
  std::deque<std::future<SentPart>> in_flight{};
  std::vector<SentPart> sent{};
  std::string whole_checksum{};
  bool finished = false;
  bool may_go_on = false;  // the server failed, and the parts stay for the next try

  AwsAnswer call(const std::string& method, std::vector<HttpField> query, std::vector<HttpField> headers = {},
                 ByteView body = {}) {
    return store.call(url, {.method = method, .query = std::move(query), .headers = std::move(headers), .body = body});
  }
  std::vector<UploadEntry> unfinished_uploads();
  void begin();
  std::optional<std::map<int, PartEntry>> parts_of(const std::string& upload);
  void abort(const std::string& upload);
  void flush_part();
  SentPart send(int number, const std::string& content);
  void take_oldest();
  void complete();
  std::optional<ObjectState> look_if_allowed();
  ObjectState what_was_sent() const { return {.size = size, .checksum = whole_checksum}; }
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

// Goes on with the newest upload that a killed process of ours left, and removes the others. Uploads of other programs
// stay as they are: their parts have no CRC32C. Where the list does not tell, the parts do; an upload that shows no
// checksums then holds nothing that could be used.
void ObjectUpload::State::begin() {
  for (const UploadEntry& upload : unfinished_uploads()) {
    const std::optional<bool> ours = has_our_checksums(upload);
    if (!ours.value_or(true)) continue;
    std::optional<std::map<int, PartEntry>> parts = parts_of(upload.id);
    if (!parts || (!ours && !all_have_checksums(*parts))) continue;
    if (!id.empty()) {
      abort(upload.id);
      continue;
    }
    id = upload.id;
    earlier = std::move(*parts);
  }
  if (!id.empty()) return;
  id =
      parse_upload_id(call("POST", {{"uploads", ""}}, {{"x-amz-checksum-algorithm", std::string(kOurChecksums)}}).body);
}

// nullopt: the upload is gone by now, or this user may not look into it.
std::optional<std::map<int, PartEntry>> ObjectUpload::State::parts_of(const std::string& upload) try {
  std::map<int, PartEntry> parts;
  std::string marker;
  do {
    std::vector<HttpField> query{{"uploadId", upload}};
    if (!marker.empty()) query.emplace_back("part-number-marker", marker);
    PartPage page = parse_parts(call("GET", query).body, marker);
    for (PartEntry& part : page.parts) parts[part.number] = std::move(part);
    marker = page.next;
  } while (!marker.empty());
  return parts;
} catch (const AwsError& error) {
  const AwsProblem problem = error.facts().problem;
  if (problem != AwsProblem::denied && problem != AwsProblem::not_found) throw;
  return std::nullopt;
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
  part_size = own_part_size(number + 1, store.limits.part_size);
}

void ObjectUpload::State::take_oldest() {
  auto oldest = std::move(in_flight.front());
  in_flight.pop_front();
  sent.push_back(oldest.get());
}

// What stands at the URL, of size 0 and without an ETag where nothing does. nullopt: who may write may not look.
std::optional<ObjectState> ObjectUpload::State::look_if_allowed() try {
  return store.find(url).value_or(ObjectState{});
} catch (const AwsError& error) {
  if (error.facts().problem != AwsProblem::denied) throw;
  return std::nullopt;
}

void ObjectUpload::State::complete() {
  while (!in_flight.empty()) take_oldest();
  std::vector<std::string> checksums;
  for (const SentPart& part : sent) checksums.push_back(part.checksum);
  whole_checksum = checksum_of_checksums(checksums);
  const std::string document = complete_document(sent);
  std::optional<ObjectState> before;
  try {
    before = look_if_allowed();
    store.call(url, {.method = "POST",
                     .query = {{"uploadId", id}},
                     .headers = {{"Content-Type", "application/xml"}},
                     .body = bytes_of(document),
                     .error_in_success = true});
  } catch (const AwsError& error) {
    const AwsProblem problem = error.facts().problem;
    may_go_on = failed == FailedParts::keep && (problem == AwsProblem::throttled || problem == AwsProblem::transient);
    // An answer that was lost on its way: a further try finds no upload, but the object.
    if (error.facts().code != "NoSuchUpload") throw;
    const std::optional<ObjectState> now = look_if_allowed();
    if (!now || !is_what_was_sent(*now, what_was_sent(), before)) throw;
  }
}

ObjectUpload::ObjectUpload(ObjectStore& store, const std::string& url, FailedParts failed)
    : state_(new State{
          .store = *store.state_, .url = url, .part_size = store.state_->limits.part_size, .failed = failed}) {
  require_object(url);
}

ObjectUpload::~ObjectUpload() {
  if (state_->finished || state_->may_go_on) return;
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
  }
  state.finished = true;
}

ObjectState ObjectUpload::sent() const { return state_->what_was_sent(); }

std::uint64_t ObjectUpload::reused() const { return state_->reused; }

}  // namespace dtrain::net
