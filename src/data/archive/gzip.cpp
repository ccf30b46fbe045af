#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include <dtrain/base/error.hpp>

#include "archive.hpp"
#include "codec/bytes.hpp"
#include "gzip_stream.hpp"

namespace dtrain::data {
namespace {

constexpr std::size_t kChunk = 1 << 20;
constexpr int kGzipOrZlib = 32 + MAX_WBITS;

struct Inflater {
  z_stream stream{};
  explicit Inflater(int window) { DTRAIN_CHECK(inflateInit2(&stream, window) == Z_OK, "zlib starts"); }
  Inflater(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

[[noreturn]] void fail(const SourceBytes& packed, std::string_view why) {
  throw DataError(fmt::format("{}: gzip: {}", packed.name, why), "copy or download it again");
}

// A gzip file ends in its content's size; a hint only, so that growing does not copy. Deflate cannot do better than
// 1032.
std::size_t likely_size(ByteView packed) {
  if (packed.size() < 4) return 0;
  const std::uint64_t hint = load<std::uint32_t>(packed, packed.size() - 4);
  return std::min({hint, kMaxInflatedBytes, std::uint64_t{1032} * packed.size()});
}

// Such content is held in memory, so that there is a limit; unpacked files are not.
[[noreturn]] void refuse_size(const SourceBytes& packed, std::string_view why) {
  const std::string how = is_archive(packed.name) ? fmt::format("dtrain data unpack {} --out DIR", packed.name)
                                                  : fmt::format("gunzip {}", packed.name);
  throw DataError(fmt::format("{}: gzip: {}", packed.name, why), "unpack it first: " + how);
}

// A gzip file is one member or several behind each other, as pigz, bgzip and `cat a.gz b.gz` write it. Anything else
// behind a member is ignored as gzip(1) does it: tapes fill the rest of their block with zeros, and some programs
// append notes of their own. False: that was the last member.
bool begin_next_member(const SourceBytes& packed, z_stream& stream) {
  const std::string_view rest(reinterpret_cast<const char*>(stream.next_in), stream.avail_in);
  if (!text_of(packed.bytes).starts_with(kGzipStart) || !rest.starts_with(kGzipStart)) return false;
  inflateReset(&stream);
  return true;
}

}  // namespace

SourceBytes gunzip(const SourceBytes& packed) {
  const auto out = std::make_shared<std::string>();
  out->reserve(likely_size(packed.bytes) + kChunk);
  Inflater inflater(kGzipOrZlib);
  z_stream& stream = inflater.stream;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.bytes.data()));
  if (packed.bytes.size() > std::numeric_limits<uInt>::max()) refuse_size(packed, "is larger than 4 GiB");
  stream.avail_in = static_cast<uInt>(packed.bytes.size());
  for (int status = Z_OK; status != Z_STREAM_END || begin_next_member(packed, stream);) {
    const std::size_t done = out->size();
    if (done > kMaxInflatedBytes) refuse_size(packed, fmt::format("holds more than {} bytes", kMaxInflatedBytes));
    out->resize(done + kChunk);
    stream.next_out = reinterpret_cast<Bytef*>(out->data() + done);
    stream.avail_out = kChunk;
    status = inflate(&stream, Z_NO_FLUSH);
    out->resize(done + kChunk - stream.avail_out);
    if (status == Z_BUF_ERROR) fail(packed, fmt::format("ends early, after {} bytes", packed.bytes.size()));
    if (status != Z_OK && status != Z_STREAM_END) {
      fail(packed,
           fmt::format("{} near byte {}", stream.msg ? stream.msg : "damaged", packed.bytes.size() - stream.avail_in));
    }
  }
  return {packed.name, bytes_of(*out), out};
}

}  // namespace dtrain::data
