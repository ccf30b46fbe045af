// Reading Protocol Buffers (protobuf.dev/programming-guides/encoding) by hand: what ONNX models need.
#pragma once

#include <cstdint>
#include <optional>

#include "checkpoint/byte_reader.hpp"

namespace dtrain::train {

// One field of a message. Numbers of 32 and 64 bits are `bytes` too.
struct ProtoField {
  std::uint64_t number = 0;  // of the field
  std::uint64_t value = 0;   // of a varint
  ByteView bytes{};          // of anything else
  bool is_varint = false;
};

// The fields of one message in their order. Throws DataError where the message is none.
class ProtoReader {
 public:
  // `source` and `hint` as of ByteReader.
  ProtoReader(ByteView message, std::string_view source, const char* hint) : reader_(message, source, hint) {}

  std::optional<ProtoField> next() {
    if (reader_.done()) return std::nullopt;
    const std::uint64_t tag = varint();
    ProtoField field{.number = tag >> 3};
    switch (tag & 7) {
      case 0:
        field.value = varint();
        field.is_varint = true;
        break;
      case 1:
        field.bytes = reader_.take(8);
        break;
      case 2:
        field.bytes = reader_.take(varint());
        break;
      case 5:
        field.bytes = reader_.take(4);
        break;
      default:
        reader_.fail("a field of no known kind");
    }
    return field;
  }

  bool done() const { return reader_.done(); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = reader_.number<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    reader_.fail("a number without an end");
  }

 private:
  ByteReader reader_;
};

}  // namespace dtrain::train
