/* Reading word vectors. Numbers are parsed only of words that are wanted: a published file has millions of lines. */
#include "runtime/data/vectors.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/data/samples.h"

enum { DIM_MAX = 65536, WORD_SHOWN = 24 };

struct reader {
    const char *path;
    FILE *file;
    const struct el_vocabulary *vocabulary;
    int64_t vocab;
    long long line;
    char *text; /* of the line */
    size_t capacity, length;
    bool *seen; /* [vocab] */
    struct el_vectors vectors;
    int64_t room;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The next line that is not empty, without blanks at its ends; false: there is none. */
static bool next_line(struct reader *reader)
{
    for (ssize_t n; (n = getline(&reader->text, &reader->capacity, reader->file)) >= 0;) {
        reader->line++;
        while (n > 0 && (is_blank(reader->text[n - 1]) || strchr("\r\n", reader->text[n - 1]))) n--;
        reader->length = (size_t)n;
        reader->text[n] = 0;
        if (n > 0) return true;
    }
    return false;
}

/* Of a line that is no text, too. */
static int64_t count_fields(const struct reader *reader)
{
    int64_t n = 0;
    for (size_t i = 0; i < reader->length; i++)
        n += !is_blank(reader->text[i]) && (i == 0 || is_blank(reader->text[i - 1]));
    return n;
}

static enum el_status fail_line(const struct reader *reader, const char *reason)
{
    return el_fail(EL_ERR_INVALID, "%s, line %lld: %s", el_path_tail(reader->path), reader->line, reason);
}

static enum el_status check_text(const struct reader *reader)
{
    for (size_t i = 0; i < reader->length; i++)
        if (((unsigned char)reader->text[i] < ' ' && reader->text[i] != '\t') || reader->text[i] == 0x7F)
            return fail_line(reader, "no text; is this word2vec's binary form? Save it as text");
    return EL_OK;
}

/* Room for one more. */
static enum el_status grow(struct reader *reader)
{
    struct el_vectors *vectors = &reader->vectors;
    if (vectors->n < reader->room) return EL_OK;
    int64_t room = reader->room ? 2 * reader->room : 1024;
    int32_t *ids = realloc(vectors->ids, (size_t)room * sizeof *ids);
    if (ids) vectors->ids = ids;
    double *values = realloc(vectors->values, (size_t)(room * vectors->dim) * sizeof *values);
    if (values) vectors->values = values;
    if (!ids || !values)
        return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for its vectors", el_path_tail(reader->path));
    reader->room = room;
    return EL_OK;
}

static enum el_status take_line(struct reader *reader)
{
    struct el_vectors *vectors = &reader->vectors;
    size_t length = strcspn(reader->text, " \t");
    const char *at = reader->text + length;
    int64_t n = count_fields(reader) - 1;
    EL_TRY(check_text(reader));
    if (n < vectors->dim) return fail_line(reader, "fewer numbers than on the lines before");
    if (n > vectors->dim) return EL_OK; /* a word of several */
    int32_t id = el_vocabulary_find(reader->vocabulary, reader->text, length);
    if (id == EL_ID_UNKNOWN || id >= reader->vocab || reader->seen[id]) return EL_OK;
    EL_TRY(grow(reader));
    double *values = vectors->values + vectors->n * vectors->dim;
    for (int64_t i = 0; i < vectors->dim; i++) {
        char *end;
        values[i] = strtod(at, &end);
        if (end == at || (*end && !is_blank(*end)) || !isfinite(values[i]))
            return fail_line(reader, "not a word and its numbers");
        at = end;
    }
    reader->seen[id] = true;
    vectors->ids[vectors->n++] = id;
    return EL_OK;
}

/* "400000 300": word2vec's first line. GloVe has none. */
static bool is_header(const struct reader *reader, int64_t *dim_p)
{
    char rest;
    long long words, dim;
    if (count_fields(reader) != 2 || sscanf(reader->text, "%lld %lld%c", &words, &dim, &rest) != 2) return false;
    *dim_p = dim;
    return words > 0 && dim > 0;
}

static enum el_status read_lines(struct reader *reader)
{
    int64_t *dim = &reader->vectors.dim;
    if (!next_line(reader)) return el_fail(EL_ERR_INVALID, "%s: empty file", el_path_tail(reader->path));
    EL_TRY(check_text(reader));
    bool header = is_header(reader, dim);
    if (!header) *dim = count_fields(reader) - 1;
    if (*dim < 1 || *dim > DIM_MAX) return fail_line(reader, "not a word and its numbers");
    if (!header) EL_TRY(take_line(reader));
    while (next_line(reader)) EL_TRY(take_line(reader));
    if (ferror(reader->file)) return el_fail_errno("%s", el_path_tail(reader->path));
    if (reader->vectors.n > 0) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s: none of its words is in the training set", el_path_tail(reader->path));
}

enum el_status el_vectors_read(const char *path, const struct el_vocabulary *vocabulary, int64_t vocab,
                               struct el_vectors *vectors_p)
{
    struct reader reader = {.path = path, .vocabulary = vocabulary, .vocab = vocab};
    EL_TRY(el_file_stream("", path, INT64_MAX, &reader.file)); /* read line by line: of any size */
    enum el_status status = EL_OK;
    reader.seen = calloc((size_t)vocab, sizeof *reader.seen);
    if (!reader.seen) status = el_fail_errno("%s", el_path_tail(path));
    if (status == EL_OK) status = read_lines(&reader);
    if (status == EL_OK)
        *vectors_p = reader.vectors;
    else
        el_vectors_free(&reader.vectors);
    free(reader.seen);
    free(reader.text);
    fclose(reader.file);
    return status;
}

void el_vectors_free(struct el_vectors *vectors)
{
    free(vectors->ids);
    free(vectors->values);
    *vectors = (struct el_vectors){0};
}

void el_vectors_put(const struct el_vectors *vectors, double *rows)
{
    for (int64_t i = 0; i < vectors->n; i++)
        memcpy(rows + vectors->ids[i] * vectors->dim, vectors->values + i * vectors->dim,
               (size_t)vectors->dim * sizeof *rows);
}
