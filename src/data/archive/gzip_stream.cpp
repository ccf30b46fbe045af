#include "gzip_stream.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <dtrain/base/error.hpp>

namespace dtrain::data {

struct GzipStream::State {
  State(std::string from, std::uint64_t file_size, TarRead reader)
      : source(std::move(from)), size(file_size), read_file(std::move(reader)), piece(kPiece) {
    constexpr int kGzip = 16 + MAX_WBITS;
    DTRAIN_CHECK(inflateInit2(&stream, kGzip) == Z_OK, "zlib starts");
  }
  State(const State&) = delete;
  ~State() { inflateEnd(&stream); }

  [[noreturn]] void fail(std::string_view why) const {
    throw DataError(fmt::format("{}: gzip: {} near byte {}", source, why, taken), "copy or download it again");
  }

  // Adds the next bytes of the file behind those that are left.
  void refill() {
    if (taken == size) fail("ends early");
    const std::size_t left = stream.avail_in;
    if (left > 0) std::memmove(piece.data(), stream.next_in, left);
    const std::uint64_t count = std::min<std::uint64_t>(kPiece - left, size - taken);
    read_file(taken, std::span(piece).subspan(left, count));
    taken += count;
    stream.next_in = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_in = static_cast<uInt>(left + count);
  }

  // Inflates into the room that the stream has; several members may follow each other.
  void step() {
    if (stream.avail_in == 0) refill();
    const int status = inflate(&stream, Z_NO_FLUSH);
    member_ended = status == Z_STREAM_END;
    if (member_ended) {
      inflateReset(&stream);
    } else if (status != Z_OK) {
      fail(stream.msg ? stream.msg : "damaged");
    }
  }

  // Some of the next bytes of the content, at least one.
  std::size_t inflate_some(std::span<std::byte> into) {
    stream.next_out = reinterpret_cast<Bytef*>(into.data());
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), kPiece));
    const uInt room = stream.avail_out;
    while (stream.avail_out == room) step();
    at += room - stream.avail_out;
    return room - stream.avail_out;
  }

  bool member_begins() {
    if (stream.avail_in < kGzipStart.size() && taken < size) refill();
    return std::string_view(reinterpret_cast<const char*>(stream.next_in), stream.avail_in).starts_with(kGzipStart);
  }

  void finish() {
    skipped.resize(kPiece);
    while (!member_ended || member_begins()) {
      stream.next_out = reinterpret_cast<Bytef*>(skipped.data());
      stream.avail_out = static_cast<uInt>(skipped.size());
      step();
    }
  }

  static constexpr std::size_t kPiece = 1 << 20;
  std::string source;
  std::uint64_t size;
  TarRead read_file;
  std::vector<std::byte> piece, skipped = {};
  z_stream stream{};
  bool member_ended = false;  // and no byte of a next one was inflated
  std::uint64_t taken = 0;    // bytes of the file
  std::uint64_t at = 0;       // bytes of the content
};

GzipStream::GzipStream(std::string source, std::uint64_t size, TarRead read)
    : state_(std::make_unique<State>(std::move(source), size, std::move(read))) {}
GzipStream::~GzipStream() = default;

void GzipStream::finish() { state_->finish(); }

std::uint64_t GzipStream::taken() const { return state_->taken; }

void GzipStream::read(std::uint64_t offset, std::span<std::byte> into) {
  DTRAIN_CHECK(offset >= state_->at, "a stream goes forward");
  while (state_->at < offset) {
    state_->skipped.resize(std::min<std::uint64_t>(State::kPiece, offset - state_->at));
    state_->inflate_some(state_->skipped);
  }
  while (!into.empty()) into = into.subspan(state_->inflate_some(into));
}

}  // namespace dtrain::data
