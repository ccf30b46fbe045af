// Writing Protocol Buffers (protobuf.dev/programming-guides/encoding) by hand: what ONNX models and TensorBoard events
// need.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::train {

// One message. Large byte fields can be borrowed, so a model's weights are never copied: they must outlive the message.
class ProtoMessage {
 public:
  ProtoMessage& integer(int field, std::int64_t value);  // int32, int64, enum, bool
  ProtoMessage& float32(int field, float value);
  ProtoMessage& float64(int field, double value);
  ProtoMessage& text(int field, std::string_view value);  // string, bytes
  ProtoMessage& message(int field, const ProtoMessage& value);
  ProtoMessage& borrowed_bytes(int field, ByteView value);

  std::uint64_t size() const { return size_; }
  // The encoded bytes, piece by piece in their order.
  template <typename Sink>
  void for_each_piece(Sink&& sink) const {
    for (const Piece& piece : pieces_) sink(piece.view());
  }
  std::string bytes() const;

 private:
  struct Piece {
    std::string owned;
    ByteView borrowed;  // used when not empty
    ByteView view() const { return borrowed.empty() ? bytes_of(owned) : borrowed; }
  };
  void tag(int field, int wire_type);
  void varint(std::uint64_t value);
  void raw(std::string_view bytes);

  std::vector<Piece> pieces_;
  std::uint64_t size_ = 0;
};

}  // namespace dtrain::train
