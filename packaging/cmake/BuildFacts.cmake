# What `dtrain --version --verbose` says about the build: compiler, libraries and, in an archive of the sources, the
# commit. None of it depends on the time or the folder of the build, so that two builds give the same bytes.

# A working tree says nothing: its last commit says little about the program that is built of it.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/commit.txt commit LIMIT_COUNT 1)
if(commit MATCHES Format)
  set(commit "")
endif()

set(libraries "")
foreach(library "OpenSSL ${OPENSSL_VERSION}" "fmt ${fmt_VERSION}" "libcurl ${CURL_VERSION_STRING}" "libjpeg ${jpeg_VERSION}"
        "libspng ${spng_VERSION}" "libssh ${libssh_VERSION}" "libwebp ${webp_VERSION}" "pugixml ${pugixml_VERSION}"
        "zlib ${ZLIB_VERSION_STRING}" "zstd ${zstd_VERSION}")
  string(APPEND libraries "${library}|")
endforeach()

set_source_files_properties(${CMAKE_SOURCE_DIR}/src/doctor/build_facts.cpp TARGET_DIRECTORY dtrain_doctor PROPERTIES
  COMPILE_DEFINITIONS "DTRAIN_COMMIT=\"${commit}\";DTRAIN_COMPILER=\"${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\";\
DTRAIN_BUILD=\"${CMAKE_BUILD_TYPE}\";DTRAIN_LIBRARIES=\"${libraries}\"")
