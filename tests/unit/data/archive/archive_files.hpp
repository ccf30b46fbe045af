// Archives for tests, byte by byte.
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain::data {

using NamedFiles = std::vector<std::pair<std::string, std::string>>;

// ustar.
inline std::string tar_of(const NamedFiles& files) {
  std::string tar;
  for (const auto& [name, content] : files) {
    std::string head(512, '\0');
    const auto put = [&](std::ptrdiff_t at, std::string_view text) { std::ranges::copy(text, head.begin() + at); };
    put(0, name);
    put(100, "0000644");
    put(124, fmt::format("{:011o}", content.size()));
    put(148, "        ");
    put(156, "0");
    put(257, "ustar");
    unsigned sum = 0;
    for (const char c : head) sum += static_cast<unsigned char>(c);
    put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
    tar += head + content + std::string((512 - content.size() % 512) % 512, '\0');
  }
  return tar + std::string(1024, '\0');
}

template <typename T>
std::string little(T number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// window_bits as deflateInit2() takes them: negative for the bare stream, 16 more for gzip.
inline std::string zlib_packed(const std::string& content, int window_bits, int level = 9) {
  std::string packed(content.size() + content.size() / 100 + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Every other file deflated. long_form: sizes and places in zip64's extra fields, as in archives above 4 GiB.
inline std::string zip_of(const NamedFiles& files, bool long_form = false) {
  std::string zip, directory;
  std::uint64_t count = 0;
  for (const auto& [name, content] : files) {
    const bool deflated = count++ % 2 == 1;
    const std::string stored = deflated ? zlib_packed(content, -MAX_WBITS) : content;
    const auto crc = static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    const std::uint64_t offset = zip.size();
    const auto size = static_cast<std::uint32_t>(content.size()), packed = static_cast<std::uint32_t>(stored.size());
    const std::string middle =
        little<std::uint16_t>(0) + little<std::uint16_t>(deflated ? 8 : 0) + little<std::uint32_t>(0) + little(crc);
    const std::string length = little(static_cast<std::uint16_t>(name.size()));
    zip += little<std::uint32_t>(0x04034b50) + little<std::uint16_t>(20) + middle + little(packed) + little(size) +
           length + little<std::uint16_t>(3) + name + "xyz" + stored;
    std::string extra;
    if (long_form) {
      extra = little<std::uint16_t>(1) + little<std::uint16_t>(24) + little<std::uint64_t>(size) +
              little<std::uint64_t>(packed) + little(offset);
    }
    const auto or_long = [&](std::uint64_t number) {
      return little(long_form ? UINT32_MAX : static_cast<std::uint32_t>(number));
    };
    directory += little<std::uint32_t>(0x02014b50) + little<std::uint32_t>(20) + middle + or_long(packed) +
                 or_long(size) + length + little(static_cast<std::uint16_t>(extra.size())) + std::string(10, '\0') +
                 or_long(offset) + name + extra;
  }
  const std::uint64_t at = zip.size(), end64 = at + directory.size();
  zip += directory;
  if (long_form) {
    zip += little<std::uint32_t>(0x06064b50) + little<std::uint64_t>(44) + std::string(12, '\0') + little(count) +
           little(count) + little<std::uint64_t>(directory.size()) + little(at);
    zip += little<std::uint32_t>(0x07064b50) + little<std::uint32_t>(0) + little(end64) + little<std::uint32_t>(1);
  }
  return zip + little<std::uint32_t>(0x06054b50) + std::string(4, '\0') + little(static_cast<std::uint16_t>(count)) +
         little(static_cast<std::uint16_t>(count)) + little(static_cast<std::uint32_t>(directory.size())) +
         little(long_form ? UINT32_MAX : static_cast<std::uint32_t>(at)) + std::string(2, '\0');
}

}  // namespace dtrain::data
