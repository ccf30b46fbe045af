// Reads and writes of a blocking descriptor that go on after a signal and after a call that moved only a part. Each
// returns how many bytes it moved; where they are fewer than asked for, errno says why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <dtrain/base/files.hpp>

namespace dtrain {

[[nodiscard]] std::size_t write_all(const FileDescriptor& file, ByteView bytes);
// The same at `offset` of a file; its position stays.
[[nodiscard]] std::size_t write_all_at(const FileDescriptor& file, std::uint64_t offset, ByteView bytes);
// errno is 0 where the file ends before `into` is full.
[[nodiscard]] std::size_t read_all_at(const FileDescriptor& file, std::uint64_t offset, std::span<std::byte> into);

}  // namespace dtrain
