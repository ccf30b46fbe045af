#include "zip_member.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::data {
namespace {

constexpr std::uint64_t kMemberPiece = 1u << 20;
constexpr std::uint64_t kBestRatio = 1032;  // of deflate

std::string name_of(const SourceBytes& archive, const ArchiveMember& member) {
  return fmt::format("{}({})", archive.name, member.name);
}

ByteView stored_bytes(const SourceBytes& archive, const ArchiveMember& member) {
  return archive.bytes.subspan(member.offset, member.stored);
}

}  // namespace

struct MemberPieces::State {
  State(const SourceBytes& archive, const ArchiveMember& member)
      : name(name_of(archive, member)),
        left(stored_bytes(archive, member)),
        size(member.size),
        crc32(member.crc32),
        deflated(member.deflated) {
    if (!deflated) return;
    if (size > kBestRatio * (left.size() + 1)) refuse_size();
    buffer.resize(std::clamp<std::uint64_t>(size, 1, kMemberPiece));
    DTRAIN_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib starts");
  }
  State(const State&) = delete;
  ~State() {
    if (deflated) inflateEnd(&stream);
  }

  [[noreturn]] void refuse(std::string_view why) const {
    throw DataError(fmt::format("{}: zip: damaged: {}", name, why), "copy or download it again");
  }
  [[noreturn]] void refuse_size() const {
    refuse(fmt::format("it does not have the {} bytes that the directory states", size));
  }

  ByteView take(std::uint64_t count) {
    const ByteView taken = left.first(std::min<std::uint64_t>(count, left.size()));
    left = left.subspan(taken.size());
    return taken;
  }

  void refill() {
    const ByteView taken = take(std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(taken.data()));
    stream.avail_in = static_cast<uInt>(taken.size());
  }

  // inflate() may have bytes to give when all of its input is taken: without them it says so itself.
  ByteView inflate_piece() {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    while (!ended && stream.avail_out > 0) {
      if (stream.avail_in == 0) refill();
      const int status = inflate(&stream, Z_NO_FLUSH);
      ended = status == Z_STREAM_END;
      if (!ended && status != Z_OK) refuse(status == Z_BUF_ERROR ? "it ends early" : "it is no deflate stream");
    }
    return bytes_of(buffer).first(buffer.size() - stream.avail_out);
  }

  ByteView next() {
    const ByteView piece = deflated ? inflate_piece() : take(kMemberPiece);
    given += piece.size();
    if (!piece.empty())
      sum = static_cast<std::uint32_t>(::crc32_z(sum, reinterpret_cast<const Bytef*>(piece.data()), piece.size()));
    if (given > size || (piece.empty() && given < size)) refuse_size();
    // 0 stands for a checksum that the writer left out, as PyTorch can.
    const bool has_checksum = deflated || crc32 != 0;
    if (piece.empty() && has_checksum && sum != crc32) refuse("its bytes differ from their checksum");
    return piece;
  }

  std::string name;
  ByteView left;  // of the stored bytes
  std::uint64_t size = 0, given = 0;
  std::uint32_t crc32 = 0, sum = 0;
  bool deflated = false, ended = false;
  std::string buffer{};
  z_stream stream{};
};

MemberPieces::MemberPieces(const SourceBytes& archive, const ArchiveMember& member)
    : state_(std::make_unique<State>(archive, member)) {}
MemberPieces::~MemberPieces() = default;

ByteView MemberPieces::next() { return state_->next(); }

SourceBytes whole_member(const SourceBytes& archive, const ArchiveMember& member) {
  const std::string name = name_of(archive, member);
  if (member.deflated && member.size > kMaxInflatedBytes) {
    throw DataError(fmt::format("{}: zip: has {} bytes; dtrain inflates at most {} into memory", name, member.size,
                                format_bytes(kMaxInflatedBytes)),
                    "make the archive again without compression, or unpack it: dtrain data unpack ARCHIVE --out DIR");
  }
  MemberPieces pieces(archive, member);
  const auto content = std::make_shared<std::string>();
  if (member.deflated) content->reserve(member.size);
  for (ByteView piece = pieces.next(); !piece.empty(); piece = pieces.next()) {
    if (member.deflated) *content += text_of(piece);
  }
  if (!member.deflated) return {name, stored_bytes(archive, member), archive.owner};
  return {name, bytes_of(*content), content};
}

}  // namespace dtrain::data
