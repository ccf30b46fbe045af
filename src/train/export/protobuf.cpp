#include "protobuf.hpp"

#include <bit>

namespace dtrain::train {
namespace {

constexpr int kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5;

template <typename Bits>
std::string_view fixed_bytes(const Bits& bits) {
  static_assert(std::endian::native == std::endian::little);
  return {reinterpret_cast<const char*>(&bits), sizeof(bits)};
}

}  // namespace

void ProtoMessage::raw(std::string_view bytes) {
  if (pieces_.empty() || !pieces_.back().borrowed.empty()) pieces_.emplace_back();
  pieces_.back().owned += bytes;
  size_ += bytes.size();
}

void ProtoMessage::varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7f) | 0x80);
  bytes += static_cast<char>(value);
  raw(bytes);
}

void ProtoMessage::tag(int field, int wire_type) {
  varint(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire_type));
}

ProtoMessage& ProtoMessage::integer(int field, std::int64_t value) {
  tag(field, kVarint);
  varint(static_cast<std::uint64_t>(value));
  return *this;
}

ProtoMessage& ProtoMessage::float32(int field, float value) {
  tag(field, kFixed32);
  raw(fixed_bytes(value));
  return *this;
}

ProtoMessage& ProtoMessage::float64(int field, double value) {
  tag(field, kFixed64);
  raw(fixed_bytes(value));
  return *this;
}

ProtoMessage& ProtoMessage::text(int field, std::string_view value) {
  tag(field, kLengthDelimited);
  varint(value.size());
  raw(value);
  return *this;
}

ProtoMessage& ProtoMessage::message(int field, const ProtoMessage& value) {
  tag(field, kLengthDelimited);
  varint(value.size_);
  for (const Piece& piece : value.pieces_) {
    if (piece.borrowed.empty()) {
      raw(piece.owned);
    } else {
      size_ += piece.borrowed.size();
      pieces_.push_back(piece);
    }
  }
  return *this;
}

ProtoMessage& ProtoMessage::borrowed_bytes(int field, ByteView value) {
  tag(field, kLengthDelimited);
  varint(value.size());
  if (!value.empty()) pieces_.push_back({{}, value});
  size_ += value.size();
  return *this;
}

std::string ProtoMessage::bytes() const {
  std::string all;
  for_each_piece([&](ByteView piece) { all += text_of(piece); });
  return all;
}

}  // namespace dtrain::train
