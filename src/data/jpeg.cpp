#include <fmt/format.h>
#include <turbojpeg.h>

#include <memory>

#include <dtrain/base/error.hpp>

#include "codecs.hpp"

namespace dtrain::data {
namespace {

constexpr int kQuality = 95;  // what MXNet's pack_img uses

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Handle = std::unique_ptr<void, Destroy>;

struct Header {
  int w = 0, h = 0, subsampling = 0, colours = 0;
};

[[noreturn]] void fail(const Handle& handle) { throw DataError(fmt::format("JPEG: {}", tjGetErrorStr2(handle.get()))); }

// Stray bytes before a marker are common in published sets and harm no pixel; every other warning means lost pixels.
bool harmless(const Handle& handle) {
  return tjGetErrorCode(handle.get()) == TJERR_WARNING &&
         std::string_view(tjGetErrorStr2(handle.get())).find("extraneous bytes") != std::string_view::npos;
}

Header read_header(const Handle& handle, ByteView payload) {
  Header header;
  const auto* bytes = reinterpret_cast<const unsigned char*>(payload.data());
  if (tjDecompressHeader3(handle.get(), bytes, payload.size(), &header.w, &header.h, &header.subsampling,
                          &header.colours) != 0 &&
      !harmless(handle)) {
    fail(handle);
  }
  return header;
}

void decompress(const Handle& handle, ByteView payload, const Header& header, int format, std::uint8_t* out) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(payload.data());
  if (tjDecompress2(handle.get(), bytes, payload.size(), out, header.w, 0, header.h, format, TJFLAG_ACCURATEDCT) != 0 &&
      !harmless(handle)) {
    fail(handle);
  }
}

// Four inks as Adobe's programs write them, 255 meaning none, to RGB.
void decompress_inks(const Handle& handle, ByteView payload, const Header& header, Image& out) {
  std::vector<std::uint8_t> inks(out.pixels.size() / 3 * 4);
  decompress(handle, payload, header, TJPF_CMYK, inks.data());
  for (std::size_t i = 0; i < inks.size() / 4; ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      out.pixels[3 * i + c] = static_cast<std::uint8_t>(inks[4 * i + c] * inks[4 * i + 3] / 255);
    }
  }
}

}  // namespace

void decode_jpeg(ByteView payload, int channels, Image& out) {
  // One a thread, used again: to make it costs a quarter of decoding a small image.
  thread_local const Handle handle(tjInitDecompress());
  DTRAIN_CHECK(handle, "turbojpeg gives a decompressor");
  const Header header = read_header(handle, payload);
  const bool inks = header.colours == TJCS_CMYK || header.colours == TJCS_YCCK;
  if (channels == kStoredChannels) channels = header.colours == TJCS_GRAY ? 1 : 3;
  if (inks) channels = 3;
  const StoredShape shape{static_cast<unsigned>(channels), static_cast<unsigned>(header.h),
                          static_cast<unsigned>(header.w)};
  shape_image(out, shape, payload, "JPEG");
  if (inks) return decompress_inks(handle, payload, header, out);
  decompress(handle, payload, header, channels == 1 ? TJPF_GRAY : TJPF_RGB, out.pixels.data());
}

std::string encode_jpeg(const Image& image) {
  const Handle handle(tjInitCompress());
  DTRAIN_CHECK(handle, "turbojpeg gives a compressor");
  const int format = image.c == 1 ? TJPF_GRAY : TJPF_RGB;
  const int subsampling = image.c == 1 ? TJSAMP_GRAY : TJSAMP_444;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int error = tjCompress2(handle.get(), image.pixels.data(), image.w, 0, image.h, format, &bytes, &size,
                                subsampling, kQuality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, decltype(&tjFree)> owner(bytes, &tjFree);
  if (error) fail(handle);
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace dtrain::data
