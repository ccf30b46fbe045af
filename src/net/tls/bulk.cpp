#include "bulk.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include <dtrain/base/hash.hpp>

#include "socket_moves.hpp"

namespace dtrain::net {
namespace {

constexpr std::size_t kHead = sizeof(std::uint32_t);
constexpr std::size_t kLargestSealed = kHead + BulkRecords::kLargest + kGcmTagSize;
// A part of this size has records of its own, so that the peer can decrypt them to where they belong.
constexpr std::size_t kOwnRecord = 8 << 10;

constexpr const char* kChanged = "bytes were changed on the way";

// Walks over the parts of a write, a record at a time.
class Cursor {
 public:
  explicit Cursor(std::span<const iovec> parts) : parts_(parts) {}
  bool at_end() const { return part_ == parts_.size(); }

  // The bytes of the next record: a piece of one large part, or small parts up to the next large one.
  std::vector<iovec>& next() {
    record_.clear();
    std::size_t left = BulkRecords::kLargest;
    while (!at_end() && left > 0) {
      const iovec rest{static_cast<std::byte*>(parts_[part_].iov_base) + done_, parts_[part_].iov_len - done_};
      const bool is_large = rest.iov_len >= kOwnRecord;
      if (is_large && !record_.empty()) break;
      const std::size_t now = std::min(rest.iov_len, left);
      if (now > 0) record_.push_back({rest.iov_base, now});
      left -= now;
      done_ += now;
      if (done_ == parts_[part_].iov_len) ++part_, done_ = 0;
      if (is_large) break;
    }
    return record_;
  }

 private:
  const std::span<const iovec> parts_;
  std::size_t part_ = 0, done_ = 0;
  std::vector<iovec> record_;
};

std::size_t text_size_of(const std::byte* head) {
  std::uint32_t size = 0;
  std::memcpy(&size, head, kHead);
  return size;
}

}  // namespace

// ---- keys

BulkKeys::BulkKeys(std::string secret, std::uint64_t records_of_one_key)
    : secret_(std::move(secret)), records_of_one_key_(records_of_one_key) {}

BulkKeys::Next BulkKeys::next() {
  if (!key_ || records_ == records_of_one_key_) {
    if (key_) secret_ = hmac_sha256(secret_, "dtrain: the next secret");
    const std::string bytes = hmac_sha256(secret_, "dtrain: key and IV");
    const ByteView view = bytes_of(bytes);
    key_.emplace(view.first<kGcmKeySize>());
    std::memcpy(iv_.data(), bytes.data() + kGcmKeySize, iv_.size());
    records_ = 0;
  }
  GcmNonce nonce = iv_;
  for (std::size_t i = 0; i < sizeof records_; ++i) {
    nonce[nonce.size() - 1 - i] ^= static_cast<std::byte>(records_ >> (8 * i));
  }
  ++records_;
  return {*key_, nonce};
}

// ---- writing

// One record at a time, which the kernel copies while it is in the first cache: larger batches are slower.
Moved BulkRecords::write(int socket, std::span<const iovec> parts) {
  Moved moved = flush(socket);
  std::size_t taken = 0;
  for (Cursor cursor(parts); moved.state == Moved::State::open && !cursor.at_end();) {
    taken += seal(cursor.next());
    moved = flush(socket);
  }
  moved.bytes = taken;
  return moved;
}

std::size_t BulkRecords::seal(std::span<const iovec> parts) {
  std::size_t size = 0;
  for (const iovec& part : parts) size += part.iov_len;
  if (size == 0) return 0;
  out_.resize(kHead + size + kGcmTagSize);
  out_sent_ = 0;
  const auto head = static_cast<std::uint32_t>(size);
  std::memcpy(out_.data(), &head, kHead);
  auto [key, nonce] = own_.next();
  key.seal(nonce, ByteView(out_).first(kHead), parts, out_.data() + kHead);
  return size;
}

Moved BulkRecords::flush(int socket) {
  while (unsent() > 0) {
    const iovec rest{out_.data() + out_sent_, unsent()};
    const Moved moved = write_to(socket, {&rest, 1});
    out_sent_ += moved.bytes;
    if (moved.state != Moved::State::open) return {.state = moved.state, .error = moved.error};
  }
  return {};
}

// ---- reading

Moved BulkRecords::read(int socket, std::span<const iovec> parts) {
  Moved moved;
  for (const iovec& part : parts) {
    for (std::span room(static_cast<std::byte*>(part.iov_base), part.iov_len); !room.empty();) {
      std::size_t got = 0;
      if (opened_read_ < opened_.size()) {
        got = std::min(room.size(), opened_.size() - opened_read_);
        std::memcpy(room.data(), opened_.data() + opened_read_, got);
        opened_read_ += got;
      } else {
        if (const auto stop = fill(socket)) {
          moved.state = stop->state;
          moved.error = stop->error;
          return moved;
        }
        const std::size_t size = text_size_of(in_.data());
        const bool fits = size <= room.size();
        opened_.resize(fits ? 0 : size);
        opened_read_ = 0;
        if (!open_next(fits ? room.first(size) : std::span(opened_))) {
          is_broken_ = true;
          opened_.clear();
          return {.bytes = moved.bytes, .state = Moved::State::broken, .error = kChanged};
        }
        got = fits ? size : 0;
      }
      room = room.subspan(got);
      moved.bytes += got;
    }
  }
  return moved;
}

// Until a whole record is here; why not, if none can be. The size of the next record is read with it.
std::optional<Moved> BulkRecords::fill(int socket) {
  if (is_broken_) return Moved{.state = Moved::State::broken, .error = kChanged};
  for (;;) {
    std::size_t wanted = kHead;
    if (in_size_ >= kHead) {
      const std::size_t size = text_size_of(in_.data());
      if (size == 0 || size > kLargest) return Moved{.state = Moved::State::broken, .error = kChanged};
      if (in_size_ >= kHead + size + kGcmTagSize) return std::nullopt;
      wanted = kHead + size + kGcmTagSize + kHead;
    }
    in_.resize(kLargestSealed + kHead);
    const iovec rest{in_.data() + in_size_, wanted - in_size_};
    Moved moved = read_from(socket, {&rest, 1});
    in_size_ += moved.bytes;
    // Fewer bytes than there is room for are all that came, but they may complete a record.
    if (moved.bytes == 0 && moved.state != Moved::State::open) return moved;
  }
}

bool BulkRecords::open_next(std::span<std::byte> room) {
  const ByteView record = ByteView(in_).first(kHead + room.size() + kGcmTagSize);
  auto [key, nonce] = theirs_.next();
  const bool is_right = key.open(nonce, record.first(kHead), record.subspan(kHead), room.data());
  in_size_ -= record.size();
  std::memmove(in_.data(), in_.data() + record.size(), in_size_);  // a part of the next one's size
  return is_right;
}

}  // namespace dtrain::net
