#include <dtrain/launch/program_archive.hpp>

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <functional>

#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>

#include <dtrain/launch/program_files.hpp>

namespace dtrain::launch {
namespace {

// POSIX.1-1988 ustar: blocks of 512 bytes, two empty ones at the end.
constexpr std::size_t kBlock = 512;
using Block = std::array<char, kBlock>;
using Sink = std::function<void(ByteView)>;

struct Field {
  std::size_t at, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kOwner{108, 8}, kGroup{116, 8}, kSize{124, 12}, kTime{136, 12},
    kChecksum{148, 8}, kMagic{257, 8};
constexpr std::size_t kType = 156;

void put(Block& block, Field field, std::string_view text) {
  DTRAIN_CHECK(text.size() <= field.size, "a field of a tar header is long enough");
  std::memcpy(block.data() + field.at, text.data(), text.size());
}

void put_octal(Block& block, Field field, std::uint64_t number) {
  put(block, field, fmt::format("{:0{}o}", number, field.size - 1));
}

// Neither times nor owners: the same files make the same bytes.
Block header_of(const ProgramFile& file) {
  Block block{};
  put(block, kName, file.name);
  put_octal(block, kMode, file.mode);
  for (const Field field : {kOwner, kGroup, kTime}) put_octal(block, field, 0);
  put_octal(block, kSize, file.size);
  put(block, kMagic,
      std::string_view("ustar\0"
                       "00",
                       8));
  block[kType] = '0';
  put(block, kChecksum, "        ");
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(block, kChecksum, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

ProgramArchive pack(const Sink& sink) {
  Sha256 hash;
  ProgramArchive archive;
  const auto add = [&](ByteView bytes) {
    hash.update(bytes);
    archive.size += bytes.size();
    if (sink) sink(bytes);
  };
  const Block empty{};
  for (const ProgramFile& file : program_files()) {
    const Block header = header_of(file);
    const MappedFile content(file.path);
    add(std::as_bytes(std::span(header)));
    add(content.bytes());
    add(std::as_bytes(std::span(empty)).first((kBlock - file.size % kBlock) % kBlock));
  }
  for (int end = 0; end < 2; ++end) add(std::as_bytes(std::span(empty)));
  archive.sha256 = hash.hex();
  return archive;
}

}  // namespace

ProgramArchive program_archive() { return pack({}); }

ProgramArchive write_program_archive(const Path& to) {
  AtomicFile file(to);
  const ProgramArchive archive = pack([&](ByteView bytes) { file.write(bytes); });
  file.commit();
  return archive;
}

}  // namespace dtrain::launch
