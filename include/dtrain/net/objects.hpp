// Objects behind s3:// and http(s):// URLs: ranged reads in parallel, lists, and uploads that are whole or not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <dtrain/net/aws.hpp>

namespace dtrain::net {

bool is_object_url(std::string_view text);  // s3://, http:// or https://

// "s3://bucket/key"; the key may be empty. Not encoded: what stands in the URL is the key.
struct S3Url {
  std::string bucket, key;
  std::string text() const { return "s3://" + bucket + "/" + key; }
};
bool is_s3_url(std::string_view text);
S3Url parse_s3_url(std::string_view text);  // throws UsageError

// What an object was when it was looked at. Reads are pinned to it.
struct ObjectState {
  std::uint64_t size = 0;
  std::string etag{};      // with its quotes; empty: the server has none
  std::string checksum{};  // base64 of CRC-32C, "...-N" over N parts; empty: the server has none
  // As the server writes it, and only where it has no ETag; empty: it has none either. With the size it shows that the
  // object changed, and not that it stayed the same: within a second it may change unseen.
  std::string last_modified{};
};

// More than any manifest of a checkpoint or document of a data set has.
inline constexpr std::uint64_t kLargestDocument = 64u << 20;
// Throws DataError, naming the URL, for an object of more bytes: for those who are to hold all of it in memory, before
// they allocate what a server states.
void require_at_most(std::uint64_t limit, const std::string& url, const ObjectState& state);

struct ObjectEntry {
  std::string key;
  std::uint64_t size = 0;
  std::string etag;
};

// How content compares with an object's checksum.
enum class ContentMatch {
  same,
  differs,
  unknown,  // the server keeps no checksum of a known kind, or nothing says which bytes each part has
};

struct ObjectLimits {
  AwsLimits tries;
  // Bytes of a part in ranged reads and uploads; an upload grows it so that there are at most 10,000 parts. S3 refuses
  // parts under 5 MiB, except the last.
  std::uint64_t part_size = 8u << 20;
  int connections = 16;  // at most; a read begins with few and takes more while that makes it faster
};

// Safe for concurrent use. Throws AwsError (a RemoteError with the service's code), DataError (an object that was
// replaced: names both ETags, or without them both times of its last change or both sizes), UsageError (URL,
// credentials), Stopped.
class ObjectStore {
 public:
  explicit ObjectStore(AwsSettings settings = {}, ObjectLimits limits = {});
  ~ObjectStore();

  ObjectState state(const std::string& url);
  // nullopt: it is not there, or its bucket is not.
  [[nodiscard]] std::optional<ObjectState> find(const std::string& url);
  // Fills `into` with the bytes from `offset` on, all of them inside the object. A try that breaks off is resumed where
  // it ended. `progress` gets the number of bytes that came, from several threads.
  void read(const std::string& url, const ObjectState& pinned, std::uint64_t offset, std::span<std::byte> into,
            const std::function<void(std::uint64_t)>& progress = {});
  // All of it. Throws DataError for more than `limit` bytes.
  std::string content(const std::string& url, const ObjectState& pinned, std::uint64_t limit);
  // Leaves TO complete, with the object's checksum where that can be known, or not there: TO.part keeps the parts that
  // came for the next try. `progress` gets the bytes that are there and the total, from several threads.
  void download(const std::string& url, const Path& to,
                const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});
  // Compares `content`, the whole object, with the object's checksum.
  [[nodiscard]] ContentMatch compare(const std::string& url, const ObjectState& pinned, ByteView content);

  // The rest is for s3:// alone.
  // All objects whose keys begin with the URL's key, by key.
  void list(const std::string& url, const std::function<void(const ObjectEntry&)>& each);
  void put(const std::string& url, ByteView content);
  void remove(const std::string& url);  // one that is not there is removed already

 private:
  friend class ObjectUpload;
  struct State;
  std::unique_ptr<State> state_;
};

// What becomes of the parts at the server when it stays busy or fails at the end of an upload.
enum class FailedParts {
  keep,    // the next upload of the same key uses them
  remove,  // for keys that are soon given up: no upload would use them, and they are billed
};

// Writes one object from its beginning to its end, in parts that are sent while further ones are written. There is one
// writer to a key at a time: parts of an upload that was killed are used where they fit, and removed otherwise.
// Unfinished uploads of other programs stay as they are.
class ObjectUpload {
 public:
  ObjectUpload(ObjectStore& store, const std::string& url, FailedParts failed = FailedParts::keep);
  // Without finish(), or where that failed for good: nothing of it stays at the server, as far as that can be reached.
  ~ObjectUpload();
  void write(ByteView bytes);
  void finish();
  ObjectState sent() const;      // after finish(): size and checksum that the object must have
  std::uint64_t reused() const;  // bytes that an earlier upload had sent already

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dtrain::net
